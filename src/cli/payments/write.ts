import { once } from 'node:events';

/** Writes a text to standard output unchanged, and waits while that takes no more. */
export async function write(text: string): Promise<void> {
  if (text !== '' && !process.stdout.write(text)) await once(process.stdout, 'drain');
}
