import { type FormEvent, useState } from 'react';
import { signIn, useSession } from '../session.ts';

/** Asks for a token where none is given by itself. It stays in this tab of the browser, and ends with it. */
export function SignIn({ reason }: { readonly reason: string | undefined }) {
  const gateway = useSession((session) => session.gateway);
  const [token, setToken] = useState('');
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (token.trim() !== '') signIn(token);
  };
  return (
    <form className="wb-sign-in" onSubmit={submit} aria-label="Sign in">
      <h2>{reason ?? 'Who is asking?'}</h2>
      <p>
        {gateway?.sandbox === 'elsewhere'
          ? 'The sandbox gives its token and its bar to pages that are opened at a loopback address, such as http://localhost:4000/graphql. Elsewhere, paste the TOKEN that npm start has printed.'
          : gateway?.auth === 'service'
            ? 'This gateway stands in front of a real service. Paste a token of your identity provider.'
            : 'This gateway stands in front of a real service. Paste an access token of that service.'}
      </p>
      <label>
        Access token
        <input
          type="password"
          autoComplete="off"
          spellCheck={false}
          value={token}
          onChange={(event) => setToken(event.target.value)}
        />
      </label>
      <button type="submit" className="wb-button wb-primary" disabled={token.trim() === ''}>
        Sign in
      </button>
      <p className="wb-hint">
        It is kept for this tab of the browser alone, and is sent to this gateway and nobody else.
      </p>
    </form>
  );
}
