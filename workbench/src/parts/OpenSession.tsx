import { type ChangeEvent, useState } from 'react';
import { readSession, showSession } from '../session-file.ts';
import { t } from '../words.ts';

/** Opens a session that was saved. */
export function OpenSession() {
  const [complaint, complain] = useState<string>();
  const open = async (event: ChangeEvent<HTMLInputElement>) => {
    const { target } = event;
    const [file] = target.files ?? [];
    if (file === undefined) return;
    // The browser tells of no choice that is the same as before: a file that was mended is chosen again.
    target.value = '';
    try {
      showSession(readSession(await file.text()));
    } catch {
      complain(t('This file is not a session of this page.'));
    }
  };
  return (
    <>
      <label className="wb-button">
        {t('Open a session')}
        <input type="file" className="wb-hidden" accept=".json" onChange={(event) => void open(event)} />
      </label>
      {complaint !== undefined && <p role="alert">{complaint}</p>}
    </>
  );
}
