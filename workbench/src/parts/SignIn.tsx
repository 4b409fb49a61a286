import { type FormEvent, useId, useState } from 'react';
import { signIn, useSession } from '../session.ts';
import { t } from '../words.ts';

const whereFrom = (isElsewhere: boolean, isService: boolean): string => {
  if (isElsewhere)
    return t(
      'The sandbox gives its token and its bar to pages that are opened at a loopback address, such as http://localhost:4000/graphql. Elsewhere, paste the TOKEN that npm start has printed.',
    );
  return isService
    ? t('This gateway stands in front of a real service. Paste a token of your identity provider.')
    : t('This gateway stands in front of a real service. Paste an access token of that service.');
};

/** Asks for a token where none is given by itself, and says at once whether it is good. It stays in this tab of the browser, and ends with it. */
export function SignIn({ reason }: { readonly reason: string | undefined }) {
  const gateway = useSession((session) => session.gateway);
  const [token, setToken] = useState('');
  const [isAsking, setIsAsking] = useState(false);
  const [complaint, complain] = useState<string>();
  const field = useId();
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (token.trim() === '' || isAsking) return;
    setIsAsking(true);
    complain(undefined);
    try {
      if (!(await signIn(token))) complain(t('The gateway does not accept this token.'));
    } catch {
      complain(t('The gateway does not say whether it accepts this token. Try again.'));
    } finally {
      setIsAsking(false);
    }
  };
  const said = complaint ?? reason;
  return (
    <form className="wb-sign-in" onSubmit={(event) => void submit(event)} aria-label={t('Sign in')}>
      <h2>{t('Who is asking?')}</h2>
      {said !== undefined && (
        <p className="wb-complaint" role="alert" id={`${field}-said`}>
          {said}
        </p>
      )}
      <p>{whereFrom(gateway?.sandbox === 'elsewhere', gateway?.auth === 'service')}</p>
      <label htmlFor={field}>
        {t('Access token')}
        <input
          id={field}
          type="password"
          autoComplete="off"
          spellCheck={false}
          value={token}
          aria-invalid={complaint !== undefined}
          aria-describedby={said === undefined ? undefined : `${field}-said`}
          onChange={(event) => setToken(event.target.value)}
        />
      </label>
      <button type="submit" className="wb-button wb-primary" disabled={token.trim() === '' || isAsking}>
        {t('Sign in')}
      </button>
      <p className="wb-hint">
        {t('It is kept for this browser tab alone, and is sent to this gateway and nobody else.')}
      </p>
    </form>
  );
}
