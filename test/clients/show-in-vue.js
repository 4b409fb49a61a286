// Vue without a page: a renderer that draws into plain objects, and what the soak shows with it.
import { createRenderer, h, onScopeDispose, shallowRef } from 'vue';

const node = (name = '') => ({ name, text: '', props: {}, children: [], parent: null });
const leave = (child) => {
  const siblings = child.parent?.children ?? [];
  if (siblings.includes(child)) siblings.splice(siblings.indexOf(child), 1);
  child.parent = null;
};
const { createApp } = createRenderer({
  createElement: node,
  createText: (text) => ({ ...node(), text }),
  createComment: () => node(),
  setText(of, text) {
    of.text = text;
  },
  setElementText(of, text) {
    of.children = [];
    of.text = text;
  },
  patchProp(of, key, _, value) {
    of.props[key] = value;
  },
  insert(child, parent, before) {
    leave(child);
    child.parent = parent;
    const place = parent.children.indexOf(before);
    parent.children.splice(place === -1 ? parent.children.length : place, 0, child);
  },
  remove: leave,
  parentNode: ({ parent }) => parent,
  nextSibling: (of) => of.parent?.children[of.parent.children.indexOf(of) + 1] ?? null,
});

/** Shows a component. @returns the node that it is drawn into */
export function mount(component) {
  const root = node('root');
  createApp(component).mount(root);
  return root;
}

/** Shows a store as docs/clients/vue.md does, and reports what is drawn. */
export function showInVue(store, report) {
  mount({
    setup() {
      const state = shallowRef();
      onScopeDispose(
        store.subscribe((value) => {
          state.value = value;
        }),
      );
      return () => {
        const { items, status, problem } = state.value;
        report({ status, problem });
        return h('ul', `${status} ${items.length}`);
      };
    },
  });
}
