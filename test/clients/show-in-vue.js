// A Vue app without a page: shows a store as docs/clients/vue.md does, and reports what it renders.
import { createRenderer, h, onScopeDispose, shallowRef } from 'vue';

const node = () => ({ parent: null });
const { createApp } = createRenderer({
  createElement: node,
  createText: node,
  createComment: node,
  setText() {},
  setElementText() {},
  patchProp() {},
  insert(child, parent) {
    child.parent = parent;
  },
  remove(child) {
    child.parent = null;
  },
  parentNode: ({ parent }) => parent,
  nextSibling: () => null,
});

export function showInVue(store, report) {
  const app = createApp({
    setup() {
      const state = shallowRef();
      onScopeDispose(store.subscribe((value) => (state.value = value)));
      return () => {
        const { items, status, problem } = state.value;
        report({ status, problem });
        return h('ul', `${status} ${items.length}`);
      };
    },
  });
  app.mount(node());
}
