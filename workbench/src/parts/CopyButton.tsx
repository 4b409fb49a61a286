import { copyText } from '../clipboard.ts';
import { t } from '../words.ts';
import { useSaid } from './said.ts';

const SHOWN_MS = 1_500;

interface Props {
  readonly text: () => string;
  readonly label: string;
}

/** Puts a text on the clipboard, and says so. */
export function CopyButton({ text, label }: Props) {
  const [said, say] = useSaid(SHOWN_MS);
  const copy = async () => {
    say((await copyText(text())) ? t('Copied') : t('The browser does not allow it'));
  };
  return (
    <button type="button" className="wb-button wb-copy" onClick={() => void copy()}>
      <span aria-live="polite">{said ?? label}</span>
    </button>
  );
}
