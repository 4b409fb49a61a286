import { type FormEvent, useState } from 'react';
import { sendTo } from '../sandbox.ts';
import { storage } from '../storage.ts';
import { t } from '../words.ts';
import { Path } from './Path.tsx';
import type { PaymentStep } from './payment-steps.ts';

/** A span of simulated time, such as `+1 min 30 s`. */
function spanOf(milliseconds: number): string {
  const all = Math.max(0, Math.round(milliseconds / 1000));
  const [hours, minutes, seconds] = [Math.floor(all / 3600), Math.floor(all / 60) % 60, all % 60];
  const parts = [hours > 0 && `${hours} h`, minutes > 0 && `${minutes} min`, seconds > 0 && `${seconds} s`];
  return `+${parts.filter(Boolean).join(' ') || '0 s'}`;
}

/** The steps of a payment, each at its place in time. */
export function PaymentAxis({ steps }: { readonly steps: readonly PaymentStep[] }) {
  const [start, end] = [steps[0]?.at ?? 0, steps.at(-1)?.at ?? 0];
  return (
    <ol className="wb-axis">
      {steps.map(({ key, at, kind, text, path, badge, state, isBad, delivery }) => {
        const line = (
          <>
            {text} {path !== undefined && <Path path={path} />}{' '}
            <span className={isBad ? 'wb-badge wb-bad' : 'wb-badge wb-good'} title={state}>
              {badge}
            </span>
          </>
        );
        return (
          <li key={key} className={`wb-step-${kind}`}>
            <time>{spanOf(at - start)}</time>
            <span className="wb-axis-lane" aria-hidden="true">
              <span
                className={isBad ? 'wb-mark-bad' : ''}
                style={{ left: `${end === start ? 0 : (100 * (at - start)) / (end - start)}%` }}
              />
            </span>
            {delivery === undefined ? (
              <span>{line}</span>
            ) : (
              <details>
                <summary>{line}</summary>
                <pre>{JSON.stringify(delivery.body, null, 2)}</pre>
                <SendTo deliveryId={delivery.id} />
              </details>
            )}
          </li>
        );
      })}
    </ol>
  );
}

const HANDLER = 'handler';

/** Sends the webhook's message to a handler of one's own. */
function SendTo({ deliveryId }: { readonly deliveryId: string }) {
  const [url, setUrl] = useState(() => storage.getItem(HANDLER) ?? 'http://127.0.0.1:3000/webhooks');
  const [said, say] = useState<string>();
  const send = async (event: FormEvent) => {
    event.preventDefault();
    storage.setItem(HANDLER, url);
    say(undefined);
    try {
      say(await sendTo(url, deliveryId)());
    } catch (error) {
      say(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <form className="wb-send" onSubmit={(event) => void send(event)}>
      <input
        type="url"
        required
        pattern="https?://.+"
        aria-label={t('Address of your handler')}
        value={url}
        onChange={(event) => setUrl(event.target.value)}
      />
      <button type="submit" className="wb-button">
        {t('Send to my handler')}
      </button>
      <span role="status">{said}</span>
    </form>
  );
}
