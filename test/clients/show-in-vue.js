// Vue without a page: a renderer that draws into plain objects, and what the soak shows with it.
import { createRenderer, getCurrentScope, h, onMounted, onScopeDispose, ref, shallowRef } from 'vue';

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
      const state = shallowRef({ items: [], status: 'offline' });
      const scope = getCurrentScope();
      const follow = () =>
        store.subscribe((value) => {
          state.value = value;
        });
      onMounted(() => scope.run(() => onScopeDispose(follow())));
      return () => {
        const { items, status, problem } = state.value;
        report({ status, problem });
        return h('ul', `${status} ${items.length}`);
      };
    },
  });
}

/** Iterates a feed in a component, as its author does without a page: into a list that the template draws. */
export function iterateInVue(feed, report, show) {
  mount({
    setup() {
      const items = ref([]);
      feed.onChange(() => report(feed));
      onMounted(async () => {
        for await (const item of feed) {
          items.value.unshift(item);
          show(items.value[0]);
          // A screen holds no more; those of an hour would fill the memory.
          items.value.length = Math.min(items.value.length, 200);
        }
      });
      return () => h('ul', String(items.value.length));
    },
  });
}
