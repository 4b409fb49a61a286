import { once } from 'node:events';
import { writeOut } from '../command.ts';

/** Writes a text to standard output unchanged, and waits while that takes no more. @throws CommandError where it cannot be written */
export async function write(text: string): Promise<void> {
  if (text !== '' && !writeOut(text)) await once(process.stdout, 'drain');
}

/** Resolves once the reader of standard output, or the file, has all that was written to it. */
export const written = (): Promise<void> =>
  new Promise((resolve) => void process.stdout.write('', () => resolve()));
