import { act, ask } from './api.js';
import { button, h, labelled } from './dom.js';
import { dayOf, t, timeOf } from './words.js';

const SPEEDS = [0, 1, 5, 60, 600];
/** Simulated seconds. */
const STEPS = [90, 300, 3_600, 86_400];

/** @param {number} seconds */
const nameOf = (seconds) =>
  ({ 90: '+90 s', 300: '+5 min', 3600: '+1 h', 86400: t('+1 day') })[seconds] ?? `+${seconds} s`;

/** The sandbox's time, which runs at a speed or stands still, and can be stepped. */
export function clockView() {
  const time = h('strong', { class: 'time' });
  const day = h('span', { class: 'quiet' });
  const speed = h(
    'select',
    {
      change: () =>
        void act(async () => {
          await ask('PATCH', '/sandbox/clock', { speed: Number(speed.value) });
          return speed.value === '0'
            ? t('The clock stands still until it is stepped.')
            : t('The clock runs {times} times as fast as yours.', { times: speed.value });
        }),
    },
    ...SPEEDS.map((times) => h('option', { value: times }, times === 0 ? t('stopped') : `${times}×`)),
  );
  const step = (/** @type {number} */ advanceSeconds) =>
    button(nameOf(advanceSeconds), () =>
      act(async () => {
        const { now } = await ask('POST', '/sandbox/clock', { advanceSeconds });
        return t('It is {time} now, and everything that fell due has happened.', { time: timeOf(now) });
      }),
    );
  const element = h(
    'div',
    { class: 'clock', role: 'group', 'aria-label': t('Clock') },
    h('span', {}, time, ' ', day),
    labelled(t('Speed'), speed),
    ...STEPS.map(step),
  );
  return {
    element,
    /** @param {import('./api.js').Overview['clock']} clock */
    show({ now, speed: times }) {
      time.textContent = timeOf(now);
      day.textContent = dayOf(now);
      if (document.activeElement === speed) return;
      if (![...speed.options].some(({ value }) => Number(value) === times)) {
        speed.append(h('option', { value: times }, `${times}×`));
      }
      speed.value = String(times);
    },
  };
}
