import { STORY } from '../story.ts';

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
    <section className="wb-story" aria-label="Story">
      <span className="wb-step">
        {at + 1} of {STORY.length}
      </span>
      <p>
        <strong>{step.title}</strong> {step.text}
      </p>
      {next === undefined ? (
        <button type="button" className="wb-button wb-plain" onClick={onRestart}>
          Start over
        </button>
      ) : (
        <button type="button" className="wb-button wb-plain" onClick={() => onOpen(next.operationName)}>
          Next: {next.title.replace(/\.$/, '')}
        </button>
      )}
    </section>
  );
}
