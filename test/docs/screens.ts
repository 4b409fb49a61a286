/** Programs that run beside the files of the pages: they show what those make, and tell of it. */

/** Shows a component, and tells when it is live, and then what its newest two items are. */
export const shows = (name: string) => `import { createElement } from 'react';
import { act, create } from 'react-test-renderer';
import { Credits } from './${name}.js';
let tree;
globalThis.IS_REACT_ACT_ENVIRONMENT = true;
await act(async () => { tree = create(createElement(Credits)); });
globalThis.IS_REACT_ACT_ENVIRONMENT = false;
let isTold = false;
setInterval(() => {
  const { props, children } = tree.toJSON();
  if (props['data-status'] === 'live' && !isTold) isTold = console.log('live') ?? true;
  if (isTold && children?.length >= 2) { console.log(children.slice(0, 2).map((item) => item.children[0]).join()); process.exit(); }
}, 20);`;
/** Shows a component, and tells what it shows whenever that is something else. */
export const draws = (name: string) => `import { createElement } from 'react';
import { act, create } from 'react-test-renderer';
import { Credits } from './${name}.js';
let tree;
globalThis.IS_REACT_ACT_ENVIRONMENT = true;
await act(async () => { tree = create(createElement(Credits)); });
globalThis.IS_REACT_ACT_ENVIRONMENT = false;
let last;
setInterval(() => {
  const text = JSON.stringify(tree.toJSON());
  if (text !== last) console.log(text);
  last = text;
}, 20);`;
/** Subscribes to a store, and tells the same. */
export const subscribes = (name: string) => `import { credits } from './${name}.js';
let isTold = false;
credits.subscribe(({ items, status }) => {
  if (status === 'live' && !isTold) isTold = console.log('live') ?? true;
  if (isTold && items.length >= 2) { console.log(items.slice(0, 2).map((item) => item.paymentConcept).join()); process.exit(); }
});`;

/** Shows a composable in a component, and tells the same. */
export const composes = (name: string) => `import { h } from 'vue';
import { mount } from '../show-in-vue.js';
import { useCredits } from './${name}.js';
const root = mount({
  setup() {
    const state = useCredits();
    return () => h('ul', { status: state.value.status }, state.value.items.map(({ paymentConcept }) => h('li', paymentConcept)));
  },
});
let isTold = false;
setInterval(() => {
  const [{ props, children }] = root.children;
  if (props.status === 'live' && !isTold) isTold = console.log('live') ?? true;
  if (isTold && children.length >= 2) { console.log(children.slice(0, 2).map(({ text }) => text).join()); process.exit(); }
}, 20);`;

/** Draws a composable on a server, as Nuxt does, and tells whether anything is followed there, and what is drawn. */
export const drawsOnServer = (name: string) => `import { createSSRApp, h } from 'vue';
import { renderToString } from 'vue/server-renderer';
// Asked for a token before anything is followed.
globalThis.fetch = () => { console.log('followed'); process.exit(); };
const { useCredits } = await import('./${name}.js');
const component = {
  setup() {
    const state = useCredits();
    return () => h('ul', { status: state.value.status }, state.value.items.map(({ paymentConcept }) => h('li', paymentConcept)));
  },
};
const html = await renderToString(createSSRApp(component));
setTimeout(() => { console.log(html); process.exit(); }, 500);`;

/**
 * Has React begin the effects of the example for phones, end them and begin them again, hide its screen and show it again. Tells each time
 * whether a payment could still be sent, and what a screen has begun with.
 */
export const connects = `import { Activity, createElement as h, StrictMode, useEffect } from 'react';
import { act, create } from 'react-test-renderer';
import { useConnection } from './use-connection.ts';
globalThis.IS_REACT_ACT_ENVIRONMENT = true;
const session = { endpoint: 'http://127.0.0.1:1/graphql', token: () => 'token' };
let last;
function Screen({ signal }) {
  last = signal;
  useEffect(() => console.log('begins, left', signal.aborted), [signal]);
  return null;
}
function SignedIn() {
  const connection = useConnection(session);
  return connection === undefined ? null : h(Screen, connection);
}
const app = (mode) => h(StrictMode, null, h(Activity, { mode }, h(SignedIn)));
let tree;
await act(async () => { tree = create(app('visible')); });
await act(async () => tree.update(app('hidden')));
console.log('hidden, left', last.aborted);
await act(async () => tree.update(app('visible')));
console.log('shown, left', last.aborted);
await act(async () => tree.unmount());
console.log('gone, left', last.aborted);`;

/** Shows the screen, presses its buttons one after another as each text comes, and tells of each. Ends where something shows that is to be missing. */
export const presses = (
  input: object,
  steps: readonly (readonly [text: string, button: string, missing?: string])[],
) => `import { createElement } from 'react';
import { act, create } from 'react-test-renderer';
const values = new Map();
const localStorage = { getItem: (key) => values.get(key) ?? null, setItem: (key, value) => void values.set(key, value), removeItem: (key) => void values.delete(key) };
Object.defineProperty(globalThis, 'localStorage', { value: localStorage });
const { FirstScreen } = await import('./first-screen.js');
const { openForm } = await import('./form.js');
const open = (payments) => openForm(globalThis.localStorage, 'ana', '7f3a', ${JSON.stringify(input)}, payments);
let tree;
globalThis.IS_REACT_ACT_ENVIRONMENT = true;
await act(async () => { tree = create(createElement(FirstScreen, { person: 'ana', open })); });
globalThis.IS_REACT_ACT_ENVIRONMENT = false;
const steps = ${JSON.stringify(steps)};
setInterval(() => {
  const [text, name, missing] = steps[0] ?? [];
  if (text === undefined || !JSON.stringify(tree.toJSON()).includes(text)) return;
  const button = tree.root.findAllByType('button').find(({ props }) => props.children === name && !props.disabled);
  if (name !== '' && button === undefined) return;
  if (missing !== undefined && JSON.stringify(tree.toJSON()).includes(missing)) throw new Error(missing);
  steps.shift();
  console.log(text);
  button?.props.onClick();
}, 20);`;
