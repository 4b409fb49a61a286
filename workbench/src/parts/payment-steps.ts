import { inWords, type TransactionDetail } from '../sandbox.ts';
import { language, t } from '../words.ts';

/** One thing that happened to a payment. */
export interface PaymentStep {
  readonly key: string;
  /** Simulated ms since the epoch. */
  readonly at: number;
  readonly kind: 'call' | 'transaction' | 'receipt' | 'webhook';
  readonly text: string;
  /** Of the REST service, behind the text. */
  readonly path: string | undefined;
  readonly badge: string;
  /** The service's own word, where the badge says it in another language. */
  readonly state: string | undefined;
  readonly isBad: boolean;
  /** The webhook that can be sent again. */
  readonly delivery: { readonly id: string; readonly body: unknown } | undefined;
}

/** The service's words for states, as a Spanish reader says them. */
const IN_SPANISH: Readonly<Record<string, string>> = {
  INITIALIZED: 'Iniciado',
  IN_PROCESS: 'En proceso',
  LIQUIDATED: 'Liquidado',
  REFUNDED: 'Devuelto',
  PENDING: 'Pendiente',
  DELAYED: 'Demorado',
  COMPLETED: 'Completado',
  FAILED: 'Fallido',
};

const stateName = (status: string): string => (language === 'es' ? (IN_SPANISH[status] ?? status) : status);

const isRefused = (status: number | null): boolean => status === null || status >= 400;

/** In the order in which they happened. */
export function stepsOf({ trail, calls, deliveries }: TransactionDetail): PaymentStep[] {
  const steps: PaymentStep[] = [
    ...calls.map(({ at, method, path, status }, index) => ({
      key: `call-${index}`,
      at: Date.parse(at),
      kind: 'call' as const,
      text: method,
      path,
      badge: status === null ? t('no complete answer') : String(status),
      state: undefined,
      isBad: isRefused(status),
      delivery: undefined,
    })),
    ...trail.map(({ at, of, status }, index) => ({
      key: `trail-${index}`,
      at: Date.parse(at),
      kind: of === 'receipt' ? ('receipt' as const) : ('transaction' as const),
      text: of === 'receipt' ? t('Receipt') : t('Payment'),
      path: undefined,
      badge: stateName(status),
      state: status,
      isBad: status === 'FAILED' || status === 'REFUNDED',
      delivery: undefined,
    })),
    ...deliveries.flatMap(({ id, webhookType, body, attempts }) =>
      attempts.map(({ at, status, error }, index) => ({
        key: `${id}-${index}`,
        at: Date.parse(at),
        kind: 'webhook' as const,
        text:
          index === 0
            ? t('Webhook {type}', { type: webhookType })
            : t('Webhook {type}, retry {number}', { type: webhookType, number: index }),
        path: undefined,
        badge: status === null ? inWords(error ?? 'no answer') : String(status),
        state: undefined,
        isBad: isRefused(status),
        delivery: { id, body },
      })),
    ),
  ];
  return steps.sort((a, b) => a.at - b.at);
}
