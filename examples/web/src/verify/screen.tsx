import { Choose } from './choose.tsx';
import { Progress } from './progress.tsx';

/** One verification where the address names one; else the choice of an account to verify. */
export function Verify({ transactionId }: { readonly transactionId: string | undefined }) {
  return transactionId === undefined ? (
    <Choose />
  ) : (
    <Progress key={transactionId} transactionId={transactionId} />
  );
}
