import type { Source } from '@pasarela/client';
import { Loading } from '../ui/parts.tsx';
import { Choose } from './choose.tsx';
import { usePayments } from './payments.ts';
import { Progress } from './progress.tsx';

interface VerifyProps {
  readonly source: Source;
  readonly owner: string;
  /** True while the gateway is there. */
  readonly isLive: boolean;
  /** Aborted as the session ends. */
  readonly signal: AbortSignal;
}

/** The choice of an account, and what becomes of its verification. A start of the app goes on where the last one was. */
export function Verify({ source, owner, isLive, signal }: VerifyProps) {
  const payments = usePayments(source, owner, isLive, signal);
  const { open, followed, leave } = payments;
  if (open === undefined) return <Loading />;
  if (followed !== undefined) {
    return <Progress source={source} transactionId={followed} onAnother={(how) => void leave(how)} />;
  }
  return <Choose source={source} open={open} payments={payments} />;
}
