/** One intent to pay for one verification. Its key is made once and sent again on every retry. */
export interface Intent {
  readonly idempotencyKey: string;
  readonly sourceInstrumentId: string;
  readonly destinationInstrumentId: string;
}

const KEPT = 'pasarela.intent';

/**
 * The intent to verify: that of an earlier try whose answer never came, when it is the same payment, so that it cannot
 * be made twice; else a new one. Written down before it is sent.
 */
export function intend(sourceInstrumentId: string, destinationInstrumentId: string): Intent {
  const kept = sessionStorage.getItem(KEPT);
  // Nobody else writes under this key.
  const earlier = kept === null ? undefined : (JSON.parse(kept) as Intent);
  const isSame =
    earlier?.sourceInstrumentId === sourceInstrumentId &&
    earlier.destinationInstrumentId === destinationInstrumentId;
  if (earlier !== undefined && isSame) return earlier;
  const intent = {
    idempotencyKey: `verify-${crypto.randomUUID()}`,
    sourceInstrumentId,
    destinationInstrumentId,
  };
  sessionStorage.setItem(KEPT, JSON.stringify(intent));
  return intent;
}

/** To be called once the outcome is known: done or refused. */
export function settled(): void {
  sessionStorage.removeItem(KEPT);
}
