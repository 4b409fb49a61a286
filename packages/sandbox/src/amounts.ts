/** Pesos as the service writes them, `"1250.00"`, from whole centavos. */
export function formatCents(cents: bigint): string {
  const sign = cents < 0n ? '-' : '';
  const digits = (cents < 0n ? -cents : cents).toString().padStart(3, '0');
  return `${sign}${digits.slice(0, -2)}.${digits.slice(-2)}`;
}

/** Centavos of a numeric string with exactly two decimals, or undefined when the text is no such thing. */
export function parseCents(text: string): bigint | undefined {
  return /^-?\d{1,15}\.\d{2}$/.test(text) ? BigInt(text.replace('.', '')) : undefined;
}
