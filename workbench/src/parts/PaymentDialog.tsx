import { useEffect, useRef, useState } from 'react';
import { readTransaction, type TransactionDetail } from '../sandbox.ts';
import { t } from '../words.ts';
import { PaymentAxis } from './PaymentAxis.tsx';
import { stepsOf } from './payment-steps.ts';

interface Props {
  readonly transactionId: string;
  readonly onClose: () => void;
}

const EVERY_MS = 1_000;

/** All that came of a payment on one axis of time: its REST calls, its states, its webhooks and its receipt. */
export function PaymentDialog({ transactionId, onClose }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const { detail, complaint } = useDetail(transactionId);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} className="wb-payment-dialog" aria-labelledby="wb-payment" onClose={onClose}>
      <header>
        <h2 id="wb-payment">{t('What happened to this payment')}</h2>
        <button type="button" className="wb-button" onClick={() => dialog.current?.close()}>
          {t('Close')}
        </button>
      </header>
      <p>
        <code>{transactionId}</code>
      </p>
      {complaint !== undefined && <p role="alert">{complaint}</p>}
      {detail !== undefined && (
        <>
          <PaymentAxis steps={stepsOf(detail)} />
          {detail.receipt?.status === 'COMPLETED' && (
            <a
              className="wb-button wb-primary"
              href={detail.receipt.url}
              target="_blank"
              rel="noopener noreferrer"
            >
              {t('Open the receipt')}
            </a>
          )}
        </>
      )}
    </dialog>
  );
}

/** Read again for as long as it is looked at: a receipt is still on its way. */
function useDetail(id: string) {
  const [detail, setDetail] = useState<TransactionDetail>();
  const [complaint, complain] = useState<string>();
  useEffect(() => {
    let isOver = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const read = async () => {
      try {
        const next = await readTransaction(id);
        if (isOver) return;
        setDetail(next);
        complain(undefined);
      } catch (error) {
        if (!isOver) complain(error instanceof Error ? error.message : String(error));
      }
      if (!isOver) timer = setTimeout(() => void read(), EVERY_MS);
    };
    void read();
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [id]);
  return { detail, complaint };
}
