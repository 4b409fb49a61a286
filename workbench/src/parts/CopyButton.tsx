import { useState } from 'react';
import { copyText } from '../clipboard.ts';
import { t } from '../words.ts';

const SHOWN_MS = 1_500;

interface Props {
  readonly text: () => string;
  readonly label: string;
}

/** Puts a text on the clipboard, and says so. */
export function CopyButton({ text, label }: Props) {
  const [said, say] = useState<string>();
  const copy = async () => {
    say((await copyText(text())) ? t('Copied') : t('The browser does not allow it'));
    setTimeout(() => say(undefined), SHOWN_MS);
  };
  return (
    <button type="button" className="wb-button wb-copy" onClick={() => void copy()}>
      <span aria-live="polite">{said ?? label}</span>
    </button>
  );
}
