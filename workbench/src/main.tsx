import '@graphiql/react/setup-workers/vite';
import '@graphiql/react/style.css';
import '@graphiql/plugin-doc-explorer/style.css';
import '@graphiql/plugin-explorer/style.css';
import '@graphiql/plugin-history/style.css';
import './style/theme.css';
import './style/page.css';
import './style/buttons.css';
import './style/main.css';
import './style/results.css';
import './style/streams.css';
import './style/sandbox.css';
import './style/payment.css';
import './style/session.css';
import './style/narrow.css';
import { createRoot } from 'react-dom/client';
import { useAnswers } from './answers.ts';
import { loadEditorWords } from './editor-words.ts';
import { showEnd } from './ended.ts';
import { Root } from './parts/Root.tsx';
import { untilReachable, useSession, watchGateway } from './session.ts';
import { linkedSession, showSession } from './session-file.ts';
import { renewKeys } from './storage.ts';
import { restoreStreams } from './streams.ts';
import { useValidation, validationOf } from './validations.ts';

const root = document.getElementById('root');
if (root === null) throw new Error('index.html has no #root.');

// Before the editor, which takes them as it is loaded. One in English is better than none.
await loadEditorWords().catch(() => undefined);
// GraphiQL asks for the editor once it is there itself: it is made ready while the gateway is asked.
void import('monaco-graphql/esm/monaco-editor.js');
let wasSandbox: boolean | undefined;
useSession.subscribe(({ gateway, sandbox }) => {
  if (gateway === undefined) return;
  const isSandbox = sandbox !== undefined;
  // Before the page is drawn with that gateway.
  if (wasSandbox === undefined) renewKeys(isSandbox);
  // A key that is played in front of a real service from now on would be kept among those that the next visit of a sandbox renews.
  else if (wasSandbox !== isSandbox) location.reload();
  wasSandbox = isSandbox;
});
useAnswers.subscribe((answers, before) => {
  for (const [tab, answer] of Object.entries(answers)) {
    const id = answer === before[tab] ? undefined : validationOf(answer.result);
    if (id !== undefined) useValidation.setState({ id });
  }
});
// The browser loads nothing where a link is opened in a tab that shows the page already.
window.addEventListener('hashchange', () => {
  if (/^#(session|query)=/.test(location.hash)) location.reload();
});
// A link that was cut short on its way is no reason not to show the page.
showSession(await linkedSession().catch(() => undefined));
createRoot(root, {
  onUncaughtError(error) {
    reportError(error);
    showEnd(root);
  },
}).render(<Root />);
await untilReachable();
watchGateway();
restoreStreams();
