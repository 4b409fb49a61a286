import type { Source } from '@pasarela/client';
import { useEffect } from 'react';
import { Choose } from './choose.tsx';
import type { Payments } from './payments.ts';
import { Progress } from './progress.tsx';

/** One verification where the address names one; else the choice of an account to verify. */
export function Verify({ source, payments, transactionId }: VerifyProps) {
  const { look } = payments;
  useEffect(() => {
    void look();
  }, [look]);
  if (transactionId === undefined) return <Choose payments={payments} />;
  return (
    <Progress
      key={transactionId}
      source={source}
      transactionId={transactionId}
      onSeen={payments.seen}
      onUntold={payments.untold}
    />
  );
}

interface VerifyProps {
  readonly source: Source;
  readonly payments: Payments;
  readonly transactionId: string | undefined;
}
