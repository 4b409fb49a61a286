import type { Graph } from '../graph/graph.ts';
import { Choose } from './choose.tsx';
import { usePayments } from './payments.ts';
import { Progress } from './progress.tsx';

/** One verification where the address names one; else the choice of an account to verify. */
export function Verify({ graph, owner, isLive, transactionId }: VerifyProps) {
  const payments = usePayments(graph, owner, isLive);
  if (transactionId === undefined) return <Choose payments={payments} />;
  return (
    <Progress
      key={transactionId}
      source={graph.source}
      transactionId={transactionId}
      onSeen={payments.seen}
      onUntold={payments.untold}
    />
  );
}

interface VerifyProps {
  readonly graph: Graph;
  readonly owner: string;
  /** True while the gateway is there. */
  readonly isLive: boolean;
  readonly transactionId: string | undefined;
}
