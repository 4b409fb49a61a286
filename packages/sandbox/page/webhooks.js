import { act, ask } from './api.js';
import { h, showList } from './dom.js';
import { t } from './words.js';

/** Where webhooks go, and a switch that has their receivers down. */
export function webhooksPanel() {
  const list = h('ul', { class: 'plain' });
  const none = h('p', { class: 'quiet' }, t('None is registered: credits are accepted automatically.'));
  let isDown = false;
  const toggle = h('button', {
    type: 'button',
    role: 'switch',
    'aria-checked': 'false',
    click: () =>
      void act(async () => {
        const { down } = await ask('PATCH', '/sandbox/webhooks', { down: !isDown });
        return down
          ? t('Every webhook fails from now on, and is sent again after 10 s, 20 s, 40 s and so on.')
          : t('Webhooks arrive again.');
      }),
  });
  return {
    element: h(
      'section',
      { class: 'panel', 'aria-labelledby': 'webhooks' },
      h('h2', { id: 'webhooks' }, 'Webhooks'),
      none,
      list,
      toggle,
    ),
    /** @param {import('./api.js').Overview['webhooks']} webhooks */
    show({ down, registered }) {
      isDown = down;
      toggle.setAttribute('aria-checked', String(down));
      toggle.textContent = t('Webhooks down');
      none.hidden = registered.length > 0;
      showList(
        list,
        registered,
        ({ id }) => id,
        ({ status, url }) => `${status} ${url} ${down}`,
        ({ type, url, status }) =>
          h(
            'li',
            { class: 'entry' },
            h('code', {}, type),
            ' ',
            h(
              'span',
              { class: status === 'ACTIVE' && !down ? 'badge good' : 'badge bad' },
              status !== 'ACTIVE' ? t('inactive') : down ? t('down') : t('active'),
            ),
            h('span', { class: 'address' }, url),
          ),
      );
    },
  };
}
