import { useState } from 'react';
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
    try {
      await navigator.clipboard.writeText(text());
      say(t('Copied'));
    } catch {
      // Only pages of https and of this machine may write there.
      say(t('The browser does not allow it'));
    }
    setTimeout(() => say(undefined), SHOWN_MS);
  };
  return (
    <button type="button" className="wb-button wb-copy" onClick={() => void copy()}>
      <span aria-live="polite">{said ?? label}</span>
    </button>
  );
}
