import type { Source } from '@pasarela/client';
import { useCallback, useEffect, useState } from 'react';
import { useSpeech } from '../ui/i18n.tsx';
import { Loading } from '../ui/parts.tsx';
import { explainRefusal } from '../ui/problem.ts';
import { Choose } from './choose.tsx';
import { findUnseen, letGo, type Verification, verify } from './payments.ts';
import { Progress } from './progress.tsx';

type Stage =
  | { readonly at: 'choosing'; readonly problem?: string; readonly forget?: (() => void) | undefined }
  | { readonly at: 'sending' }
  | { readonly at: 'following'; readonly transactionId: string; readonly leave: () => Promise<void> };

interface VerifyProps {
  readonly source: Source;
  readonly clientId: string;
}

/** One verification: the choice of an account, and what becomes of it. A start of the app goes on where the last one was. */
export function Verify({ source, clientId }: VerifyProps) {
  const { t } = useSpeech();
  const [stage, setStage] = useState<Stage>();

  const send = useCallback(
    async (input: Verification) => {
      setStage({ at: 'sending' });
      try {
        const outcome = await verify(source, clientId, input);
        if (outcome.status === 'done') {
          const { id } = outcome.result.transaction;
          setStage({ at: 'following', transactionId: id, leave: outcome.acknowledge });
        } else if (outcome.status === 'refused') {
          setStage({ at: 'choosing', problem: explainRefusal(outcome.code, outcome.message, t) });
        } else {
          const { title, safe, unsafe } = t.unknown;
          const { idempotencyKey } = outcome.intent;
          const forget = () =>
            void letGo(clientId, idempotencyKey).then(
              () => setStage({ at: 'choosing' }),
              () => setStage({ at: 'choosing', problem: t.unstorable, forget }),
            );
          setStage({
            at: 'choosing',
            problem: `${title}. ${outcome.safeToRetry ? safe : unsafe}`,
            // As long as asking may still tell, nothing is let go of.
            forget: outcome.safeToRetry ? undefined : forget,
          });
        }
      } catch {
        // The phone could not keep the intent: nothing was sent without it.
        setStage({ at: 'choosing', problem: t.unstorable });
      }
    },
    [source, clientId, t],
  );
  // biome-ignore lint/correctness/useExhaustiveDependencies: looked for once, at the start.
  useEffect(() => {
    findUnseen(clientId).then(
      (unseen) => (unseen === undefined ? setStage({ at: 'choosing' }) : send(unseen)),
      () => setStage({ at: 'choosing', problem: t.unstorable }),
    );
  }, []);

  if (stage === undefined) return <Loading />;
  if (stage.at === 'following') {
    const { transactionId, leave } = stage;
    // If the phone cannot keep that it was seen, it is shown once more.
    const another = () =>
      void leave()
        .catch(() => {})
        .then(() => setStage({ at: 'choosing' }));
    return <Progress source={source} transactionId={transactionId} onAnother={another} />;
  }
  const problem = stage.at === 'choosing' ? stage.problem : undefined;
  return (
    <Choose
      source={source}
      sending={stage.at === 'sending'}
      problem={problem}
      onForget={stage.at === 'choosing' ? stage.forget : undefined}
      onSend={(input) => void send(input)}
    />
  );
}
