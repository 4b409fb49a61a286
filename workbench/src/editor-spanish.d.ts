/** The editor's texts in Spanish, by the English: made by the build. */
declare module 'virtual:editor-spanish' {
  const words: Readonly<Record<string, string>>;
  export default words;
}
