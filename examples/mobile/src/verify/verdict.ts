/** What a verification has shown. Without a name to compare with, the receipt tells the holder and proves no match. */
export type Verdict = 'pending' | 'failed' | 'matches' | 'differs' | 'not registered';

interface Receipt {
  readonly status: string;
  readonly beneficiaryName: string | null;
}

/** @param registered the holder's name that the receiver was registered with; null where there is none. */
export function verdictOf(receipt: Receipt | undefined, registered: string | null): Verdict {
  if (receipt?.status === 'FAILED') return 'failed';
  if (receipt?.status !== 'COMPLETED') return 'pending';
  if (!registered || !receipt.beneficiaryName) return 'not registered';
  return bare(registered) === bare(receipt.beneficiaryName) ? 'matches' : 'differs';
}

/** Letters and digits alone: receipts are written in capitals, and often without accents. */
const bare = (text: string): string =>
  text
    .normalize('NFD')
    .replace(/[^\p{L}\p{N}]/gu, '')
    .toLowerCase();
