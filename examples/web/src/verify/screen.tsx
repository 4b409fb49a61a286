import type { Graph } from '../graph/graph.ts';
import { Choose } from './choose.tsx';
import { usePayments } from './payments.ts';
import { Progress } from './progress.tsx';

/** One verification where the address names one; else the choice of an account to verify. */
export function Verify({ graph: { source }, clientId, isLive, transactionId }: VerifyProps) {
  const payments = usePayments(source, clientId, isLive);
  if (transactionId === undefined) return <Choose payments={payments} />;
  return (
    <Progress key={transactionId} source={source} transactionId={transactionId} onSeen={payments.seen} />
  );
}

interface VerifyProps {
  readonly graph: Graph;
  readonly clientId: string;
  /** True while the gateway is there. */
  readonly isLive: boolean;
  readonly transactionId: string | undefined;
}
