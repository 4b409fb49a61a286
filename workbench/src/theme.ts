import { useGraphiQL, useGraphiQLActions, useMonaco } from '@graphiql/react';
import { useEffect } from 'react';

/** Names under which the editor knows its colours. */
export const EDITOR_THEME = { light: 'pasarela-light', dark: 'pasarela-dark' };

const colours = (green: string, tint: string, ground: string, line: string, quiet: string) => ({
  'editor.background': '#ffffff00',
  'editorGutter.background': '#ffffff00',
  'scrollbar.shadow': '#ffffff00',
  'textLink.foreground': green,
  'editorLink.activeForeground': green,
  'editorCursor.foreground': green,
  'editorLineNumber.dimmedForeground': quiet,
  'editorHoverWidget.background': ground,
  'editorSuggestWidget.background': ground,
  'editorSuggestWidget.selectedBackground': tint,
  'editorSuggestWidget.selectedForeground': green,
  'editorWidget.background': ground,
  'editorWidget.border': line,
  'list.hoverBackground': tint,
  'list.highlightForeground': green,
  'menu.background': ground,
  'quickInput.background': ground,
  focusBorder: green,
});

/** Gives the editor the page's colours, once it is there, and again when the system changes from day to night. */
export function useEditorTheme(): void {
  const monaco = useMonaco((state) => state.monaco);
  const theme = useGraphiQL((state) => state.theme);
  const { setTheme } = useGraphiQLActions();
  useEffect(() => {
    if (monaco === undefined) return;
    monaco.editor.defineTheme(EDITOR_THEME.light, {
      base: 'vs',
      inherit: true,
      colors: colours('#0b7a53', '#0b7a5318', '#ffffff', '#d5dfda', '#55635c'),
      rules: [
        { token: 'keyword', foreground: '0b7a53' },
        { token: 'key.identifier.gql', foreground: '1d5fa8' },
        { token: 'argument.identifier.gql', foreground: '8a4b08' },
        { token: 'type.identifier.gql', foreground: '6b3fa0' },
        { token: 'string.key.json', foreground: '1d5fa8' },
        { token: 'string.value.json', foreground: '0b7a53' },
      ],
    });
    monaco.editor.defineTheme(EDITOR_THEME.dark, {
      base: 'vs-dark',
      inherit: true,
      colors: colours('#4fd1a1', '#4fd1a11f', '#17211d', '#2c3a34', '#9db0a7'),
      rules: [
        { token: 'keyword', foreground: '4fd1a1' },
        { token: 'key.identifier.gql', foreground: '8cc4ff' },
        { token: 'argument.identifier.gql', foreground: 'e8b26d' },
        { token: 'type.identifier.gql', foreground: 'c7a5f2' },
        { token: 'string.key.json', foreground: '8cc4ff' },
        { token: 'string.value.json', foreground: '7fdcb8' },
      ],
    });
    setTheme(theme);
    const dark = matchMedia('(prefers-color-scheme: dark)');
    const follow = () => setTheme(theme);
    dark.addEventListener('change', follow);
    return () => dark.removeEventListener('change', follow);
  }, [monaco, theme, setTheme]);
}
