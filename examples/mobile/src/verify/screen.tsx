import type { Source } from '@pasarela/client';
import { Loading } from '../ui/parts.tsx';
import { Choose } from './choose.tsx';
import type { Payments } from './payments.ts';
import { Progress } from './progress.tsx';

interface VerifyProps {
  readonly source: Source;
  readonly payments: Payments;
}

/** The choice of an account, and what becomes of its verification. A start of the app goes on where the last one was. */
export function Verify({ source, payments }: VerifyProps) {
  const { open, followed, leave } = payments;
  if (open === undefined) return <Loading />;
  if (followed !== undefined) {
    return <Progress source={source} transactionId={followed} onAnother={(how) => void leave(how)} />;
  }
  return <Choose source={source} open={open} payments={payments} />;
}
