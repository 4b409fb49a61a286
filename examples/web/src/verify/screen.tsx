import type { Source } from '@pasarela/client';
import { Choose } from './choose.tsx';
import { Progress } from './progress.tsx';

/** One verification where the address names one; else the choice of an account to verify. */
export function Verify({ source, transactionId }: VerifyProps) {
  return transactionId === undefined ? (
    <Choose source={source} />
  ) : (
    <Progress key={transactionId} source={source} transactionId={transactionId} />
  );
}

interface VerifyProps {
  readonly source: Source;
  readonly transactionId: string | undefined;
}
