import type { Locator } from 'playwright-core';

/**
 * Where the text of each element goes on in another line.
 *
 * @returns for each break that is not at a `/`, a `?`, a `&` or a space the text around it, with the break as `|`
 */
export const oddBreaks = (elements: Locator): Promise<string[]> =>
  elements.evaluateAll((all) =>
    all.flatMap((element) => {
      const characters: { character: string; top: number }[] = [];
      const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
      for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
        for (const [index, character] of [...(node.textContent ?? '')].entries()) {
          const range = document.createRange();
          range.setStart(node, index);
          range.setEnd(node, index + 1);
          const [box] = range.getClientRects();
          // A space at the end of a line has no place of its own.
          const top = box === undefined || box.width === 0 ? characters.at(-1)?.top : box.top;
          if (top !== undefined) characters.push({ character, top });
        }
      }
      const text = (from: number, to: number) =>
        characters
          .slice(Math.max(0, from), to)
          .map(({ character }) => character)
          .join('');
      return characters.flatMap(({ character, top }, index) => {
        const before = characters[index - 1];
        const isBreak = before !== undefined && top > before.top + 4;
        const isOdd = isBreak && !/[/?&\s]/.test(character) && !/\s/.test(before.character);
        return isOdd ? [`${text(index - 20, index)}|${text(index, index + 20)}`] : [];
      });
    }),
  );
