import type { ClientView } from './control-views.ts';
import type { Entry } from './reference-entry.ts';

/** The sandbox's control in the reference, by method and path. */
export function controlEntries(demo: ClientView): Record<string, Entry> {
  const entry = (en: string, es: string, body?: unknown): Entry => ({ number: null, en, es, body });
  const clabe = demo.accounts[0]?.clabe;
  return {
    'GET /sandbox': entry('What there is to play with.', 'Con qué se puede jugar.'),
    'POST /sandbox/spei-credits': entry('An SPEI credit arrives.', 'Llega un abono SPEI.', {
      clabe,
      amount: '1250.00',
      payerName: 'Ana Torres',
      concept: 'Factura 1',
    }),
    'POST /sandbox/refunds': entry('The latest credit goes back.', 'Se devuelve el último abono.', {}),
    'POST /sandbox/faults': entry(
      'A request goes wrong from now on.',
      'Una petición falla a partir de ahora.',
      {
        match: { method: 'POST', path: '/v1/transactions/' },
        fault: 'reset-after-commit',
        times: 1,
      },
    ),
    'GET /sandbox/faults': entry(
      'Faults, and how often each was seen.',
      'Fallas, y cuántas veces se vio cada una.',
    ),
    'DELETE /sandbox/faults': entry('Disarms every fault.', 'Desactiva todas las fallas.'),
    'POST /sandbox/clock': entry('Steps the clock.', 'Adelanta el reloj.', { advanceSeconds: 300 }),
    'PATCH /sandbox/clock': entry(
      'Runs the clock at another speed; 0 stops it.',
      'Cambia la velocidad del reloj; 0 lo detiene.',
      {
        speed: 5,
      },
    ),
    'PATCH /sandbox/webhooks': entry(
      'Has every receiver of webhooks down, or up again.',
      'Deja caídos los receptores de webhooks, o los levanta.',
      { down: false },
    ),
    'GET /sandbox/deliveries': entry(
      'Every webhook sent, with its replies.',
      'Cada webhook enviado, con sus respuestas.',
    ),
    'GET /sandbox/ledger': entry('Every movement of money.', 'Cada movimiento de dinero.'),
    'GET /sandbox/requests': entry(
      'Which endpoints were called, how often.',
      'Qué endpoints se llamaron, y cuántas veces.',
    ),
  };
}
