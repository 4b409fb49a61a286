import { type Answer, Refused } from '@pasarela/client';
import { type FormEvent, useState } from 'react';
import { DEFAULT_ENDPOINT, type Session, typedSession } from './graph/session.ts';
import { Main } from './ui/feedback.tsx';
import { useSpeech } from './ui/i18n.tsx';
import { kindOf, type ProblemKind } from './ui/problem.ts';

interface SignInProps {
  /** Whether the gateway has just refused a token. */
  readonly refused: boolean;
  readonly onSession: (session: Session) => void;
}

type Problem = ProblemKind | 'unreachable';

export function SignIn({ refused, onSession }: SignInProps) {
  const { t } = useSpeech();
  const [problem, setProblem] = useState<Problem | undefined>(refused ? 'token' : undefined);
  const [busy, setBusy] = useState(false);

  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const endpoint = String(form.get('endpoint')).trim();
    const token = String(form.get('token')).trim();
    setBusy(true);
    const found = await check(endpoint, token);
    setBusy(false);
    setProblem(found);
    if (found === undefined) onSession(typedSession(endpoint, token));
  };

  return (
    <Main narrow>
      <form className="card" onSubmit={(event) => void submit(event)}>
        <h1>{t.signIn.title}</h1>
        <p className="lead">
          {t.signIn.lead
            .split('`')
            .map((part, index) => (index % 2 === 1 ? <code key={part}>{part}</code> : part))}
        </p>
        <label>
          {t.signIn.endpoint}
          <input name="endpoint" type="url" required defaultValue={DEFAULT_ENDPOINT} spellCheck={false} />
        </label>
        <label>
          {t.signIn.token}
          <input name="token" type="password" required autoComplete="off" aria-describedby="token-note" />
        </label>
        <p id="token-note" className="note">
          {t.signIn.note}
        </p>
        {problem !== undefined && (
          <p role="alert" className="notice bad">
            {problem === 'unreachable' ? t.signIn.unreachable : t.problems[problem]}
          </p>
        )}
        <button type="submit" className="primary" disabled={busy}>
          {t.signIn.submit}
        </button>
      </form>
    </Main>
  );
}

/** Asks the gateway who the token belongs to. */
async function check(endpoint: string, token: string): Promise<Problem | undefined> {
  try {
    const response = await fetch(endpoint, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      body: JSON.stringify({ query: '{ client { id } }' }),
    });
    const { data, errors } = (await response.json()) as Answer<{ readonly client?: unknown }>;
    if (data?.client) return undefined;
    return errors?.[0] === undefined ? 'unreachable' : kindOf(new Refused(errors[0]));
  } catch {
    return 'unreachable';
  }
}
