import { readFile } from 'node:fs/promises';

/** The project's own folder. */
export const ROOT = new URL('../../', import.meta.url);

export const readPage = (page: string): Promise<string> => readFile(new URL(page, ROOT), 'utf8');

/** The fenced blocks of a page whose info string is `info`, or begins with it and a space. */
export function blocks(
  page: string,
  info: string,
): readonly { readonly argument: string; readonly text: string }[] {
  const fence = new RegExp(`^\`\`\`${info}(?: ([^\\n]+))?\\n(.*?)^\`\`\`$`, 'gms');
  return [...page.matchAll(fence)].map(([, argument = '', text = '']) => ({ argument, text }));
}

/** The headings of a page, as the anchors that links name. */
export const anchors = (page: string): readonly string[] =>
  [...page.replace(/^```.*?^```$/gms, '').matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
