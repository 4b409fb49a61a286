import { once } from 'node:events';

/** Writes to standard output as it is, and waits where that takes no more. */
export async function write(text: string): Promise<void> {
  if (text !== '' && !process.stdout.write(text)) await once(process.stdout, 'drain');
}
