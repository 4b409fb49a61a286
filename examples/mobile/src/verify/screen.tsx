import type { Source } from '@pasarela/client';
import { useCallback, useEffect, useState } from 'react';
import { useSpeech } from '../ui/i18n.tsx';
import { Loading } from '../ui/parts.tsx';
import { Choose } from './choose.tsx';
import { findUnseen, type Verification, verify } from './payments.ts';
import { Progress } from './progress.tsx';

type Stage =
  | { readonly at: 'choosing'; readonly problem?: string }
  | { readonly at: 'sending' }
  | { readonly at: 'following'; readonly transactionId: string; readonly leave: () => Promise<void> };

/** One verification: the choice of an account, and what becomes of it. A start of the app goes on where the last one was. */
export function Verify({ source }: { readonly source: Source }) {
  const { t } = useSpeech();
  const [stage, setStage] = useState<Stage>();

  const send = useCallback(
    async (input: Verification) => {
      setStage({ at: 'sending' });
      const outcome = await verify(source, input);
      if (outcome.status === 'done') {
        const { id } = outcome.result.transaction;
        setStage({ at: 'following', transactionId: id, leave: outcome.acknowledge });
      } else if (outcome.status === 'refused') {
        setStage({ at: 'choosing', problem: outcome.message });
      } else {
        const { title, safe, unsafe } = t.unknown;
        setStage({ at: 'choosing', problem: `${title}. ${outcome.safeToRetry ? safe : unsafe}` });
      }
    },
    [source, t],
  );
  // biome-ignore lint/correctness/useExhaustiveDependencies: looked for once, at the start.
  useEffect(() => {
    void findUnseen().then((unseen) => (unseen === undefined ? setStage({ at: 'choosing' }) : send(unseen)));
  }, []);

  if (stage === undefined) return <Loading />;
  if (stage.at === 'following') {
    const { transactionId, leave } = stage;
    const another = () => void leave().then(() => setStage({ at: 'choosing' }));
    return <Progress source={source} transactionId={transactionId} onAnother={another} />;
  }
  const problem = stage.at === 'choosing' ? stage.problem : undefined;
  return (
    <Choose
      source={source}
      sending={stage.at === 'sending'}
      problem={problem}
      onSend={(input) => void send(input)}
    />
  );
}
