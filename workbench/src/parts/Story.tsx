import { STORY } from '../story.ts';
import { t } from '../words.ts';

interface Props {
  /** The name of the open tab. */
  readonly title: string;
  readonly onOpen: (operationName: string) => void;
  readonly onRestart: () => void;
}

/** Where the reader is in the story; nothing in a tab that is none of its own. */
export function Story({ title, onOpen, onRestart }: Props) {
  const at = STORY.findIndex(({ operationName }) => operationName === title);
  const step = STORY[at];
  if (step === undefined) return null;
  const next = STORY[at + 1];
  return (
    <section className="wb-story" aria-label={t('Story')}>
      <span className="wb-step">{t('{step} of {steps}', { step: at + 1, steps: STORY.length })}</span>
      <p>
        <strong>{step.title}</strong> {step.text}
      </p>
      {next === undefined ? (
        <button type="button" className="wb-button wb-plain" onClick={onRestart}>
          {t('Start over')}
        </button>
      ) : (
        <button type="button" className="wb-button wb-plain" onClick={() => onOpen(next.operationName)}>
          {t('Next: {title}', { title: next.title.replace(/\.$/, '') })}
        </button>
      )}
    </section>
  );
}
