import { type Bars, number } from './section.ts';

const WIDTH = 720;
const LABEL = 190;
const BAR = 18;
const GAP = 6;
const TITLE = 30;
const MARGIN = 16;
const OWN = '#0b7a53';
const OTHER = '#b8c0c8';

const xml = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/** Horizontal bars, a group for each measurement, each group with a scale of its own. */
export function chart(groups: readonly Bars[]): string {
  let y = MARGIN;
  const parts: string[] = [];
  for (const { title, bars } of groups) {
    parts.push(`<text x="${MARGIN}" y="${y + 16}" font-weight="600">${xml(title)}</text>`);
    y += TITLE;
    const scale = (WIDTH - LABEL - MARGIN - 80) / Math.max(...bars.map(({ value }) => value));
    for (const { label, value } of bars) {
      const width = Math.max(1, value * scale).toFixed(1);
      const colour = label.startsWith('Pasarela') ? OWN : OTHER;
      const middle = y + BAR / 2 + 4;
      parts.push(
        `<text x="${LABEL - 8}" y="${middle}" text-anchor="end">${xml(label)}</text>`,
        `<rect x="${LABEL}" y="${y}" width="${width}" height="${BAR}" rx="2" fill="${colour}"/>`,
        `<text x="${LABEL + Number(width) + 6}" y="${middle}">${number(value)}</text>`,
      );
      y += BAR + GAP;
    }
    y += MARGIN;
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${y}" viewBox="0 0 ${WIDTH} ${y}" font-family="system-ui, sans-serif" font-size="13" fill="#1f2933">
<title>Measurements of Pasarela beside other servers, as in latest.md; shorter is better</title>
<rect width="100%" height="100%" fill="#ffffff"/>
${parts.join('\n')}
</svg>
`;
}
