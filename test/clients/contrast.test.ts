import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { folder } from '../helpers/packages.ts';

type Colour = readonly number[];

const colourOf = (text: string): Colour =>
  [1, 3, 5].map((at) => Number.parseInt(text.slice(at, at + 2), 16) / 255);

/** The relative luminance of WCAG 2.2. */
function luminanceOf(colour: Colour): number {
  const [red = 0, green = 0, blue = 0] = colour.map((part) =>
    part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4,
  );
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrastOf(one: Colour, other: Colour): number {
  const [dark = 0, light = 0] = [one, other].map(luminanceOf).toSorted((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

/** What one sees of a colour that covers another in part. */
const over = (colour: Colour, ground: Colour, part: number): Colour =>
  colour.map((of, at) => of * part + (ground[at] ?? 0) * (1 - part));

const WEB = 'examples/web/src/ui/styles.css';

/** A style sheet's colours by their names, by day and at night. */
async function coloursOf(file: string): Promise<readonly ((name: string) => Colour)[]> {
  const css = await readFile(folder(file), 'utf8');
  const pairs = new Map(
    [...css.matchAll(/--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)/g)].map(([, name = '', ...two]) => [
      name,
      two,
    ]),
  );
  return [0, 1].map((time) => (name) => colourOf(pairs.get(name)?.[time] ?? ''));
}

/** Where something is typed, and on what it stands. */
it.each([
  [WEB, 'field', ['page', 'card']],
  ['workbench/src/style/theme.css', 'wb-edge', ['wb-ground', 'wb-surface']],
  ['packages/sandbox/page/style.css', 'edge', ['ground', 'surface']],
])(
  '%s: what is typed into has an edge, %s, that stands out by 3:1, by day and at night',
  async (file, edge, grounds) => {
    for (const colour of await coloursOf(file))
      for (const ground of grounds)
        expect(contrastOf(colour(edge), colour(ground))).toBeGreaterThanOrEqual(3);
  },
);

it('no field of the page at /graphql has the edge of a line', async () => {
  const styles = folder('workbench/src/style');
  const sheets = await Promise.all(
    (await readdir(styles)).map((name) => readFile(join(styles, name), 'utf8')),
  );
  const fields = sheets.flatMap(
    (css) => css.match(/^[^{}]*\b(?:input|select)\b[^{}]*\{[^}]*border: [^}]*\}/gm) ?? [],
  );
  expect(fields.length).toBeGreaterThan(2);
  expect(fields.filter((rule) => rule.includes('var(--wb-line)'))).toEqual([]);
});

it('what has the focus in the web example stands out by 3:1, by day and at night', async () => {
  const css = await readFile(folder(WEB), 'utf8');
  const parts = [...css.matchAll(/outline: .*var\(--accent\) (\d+)%/g)].map(([, part]) => Number(part) / 100);
  expect(parts).not.toEqual([]);
  for (const colour of await coloursOf(WEB))
    for (const ground of [colour('page'), colour('card')])
      for (const part of parts)
        expect(contrastOf(over(colour('accent'), ground, part), ground)).toBeGreaterThanOrEqual(3);
});

it('the example for phones has the colours of the web example', async () => {
  const theme = await readFile(folder('examples/mobile/src/ui/theme.ts'), 'utf8');
  const css = await readFile(folder(WEB), 'utf8');
  for (const name of ['page', 'card', 'line', 'field', 'accent']) {
    const told = [...theme.matchAll(new RegExp(`^  ${name}: '(#\\w{6})'`, 'gm'))].map(([, colour]) => colour);
    expect(css).toContain(`--${name}: light-dark(${told.join(', ')});`);
  }
});
