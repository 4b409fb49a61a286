import type { Graph } from '../graph/graph.ts';
import { Choose } from './choose.tsx';
import { Progress } from './progress.tsx';

/** One verification where the address names one; else the choice of an account to verify. */
export function Verify({ graph, clientId, transactionId }: VerifyProps) {
  return transactionId === undefined ? (
    <Choose graph={graph} clientId={clientId} />
  ) : (
    <Progress key={transactionId} source={graph.source} transactionId={transactionId} />
  );
}

interface VerifyProps {
  readonly graph: Graph;
  readonly clientId: string;
  readonly transactionId: string | undefined;
}
