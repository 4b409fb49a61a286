import { language } from './words.ts';

/** Gives the editor its texts in the visitor's language, where it looks for them. */
export async function loadEditorWords(): Promise<void> {
  if (language !== 'es') return;
  const { default: words } = await import('virtual:editor-spanish');
  // One of its texts is "constructor".
  Object.assign(globalThis, { _VSCODE_NLS_MESSAGES: Object.assign(Object.create(null), words) });
}
