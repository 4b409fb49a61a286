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

/** Shows the screen, presses its buttons one after another as each text comes, and tells of each. Ends where something shows that is to be missing. */
export const presses = (
  input: object,
  steps: readonly (readonly [text: string, button: string, missing?: string])[],
) => `import { createElement } from 'react';
import { act, create } from 'react-test-renderer';
const values = new Map();
const localStorage = { getItem: (key) => values.get(key) ?? null, setItem: (key, value) => void values.set(key, value) };
Object.defineProperty(globalThis, 'localStorage', { value: localStorage });
const { FirstScreen } = await import('./first-screen.js');
let tree;
globalThis.IS_REACT_ACT_ENVIRONMENT = true;
await act(async () => { tree = create(createElement(FirstScreen, { person: 'ana', input: ${JSON.stringify(input)} })); });
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
