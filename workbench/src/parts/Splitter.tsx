import { type KeyboardEvent, type RefObject, useState } from 'react';
import { storage } from '../storage.ts';

interface Props {
  /** What is before it; what is after it has the rest of the room. */
  readonly first: RefObject<HTMLElement | null>;
  readonly second: RefObject<HTMLElement | null>;
  /** The bar itself: `vertical` stands between what is side by side. */
  readonly orientation: 'vertical' | 'horizontal';
  /** Where GraphiQL keeps the sizes that were dragged. */
  readonly storageKey: string;
  readonly label: string;
}

const STEP_PX = 32;
const LEAST_PX = 100;

/** Moves a border between two parts of the page by the arrow keys; the mouse drags what is around it. */
export function Splitter({ first, second, orientation, storageKey, label }: Props) {
  const [share, setShare] = useState(50);
  const sizes = (): [number, number] => {
    const [a, b] = [first.current?.getBoundingClientRect(), second.current?.getBoundingClientRect()];
    return orientation === 'vertical' ? [a?.width ?? 0, b?.width ?? 0] : [a?.height ?? 0, b?.height ?? 0];
  };
  const measure = () => {
    const [a, b] = sizes();
    setShare(Math.round((100 * a) / Math.max(1, a + b)));
  };
  const move = (event: KeyboardEvent) => {
    const [back, on] = orientation === 'vertical' ? ['ArrowLeft', 'ArrowRight'] : ['ArrowUp', 'ArrowDown'];
    if (event.key !== back && event.key !== on) return;
    event.preventDefault();
    // What is around it has arrow keys of its own.
    event.stopPropagation();
    const [a, b] = sizes();
    const size = Math.min(Math.max(a + (event.key === on ? STEP_PX : -STEP_PX), LEAST_PX), a + b - LEAST_PX);
    const flex = String(size / Math.max(1, a + b - size));
    if (first.current !== null) first.current.style.flex = flex;
    storage.setItem(`graphiql:${storageKey}`, flex);
    measure();
  };
  return (
    // An hr could not be moved.
    // biome-ignore lint/a11y/useSemanticElements: see above
    <div
      className="wb-splitter"
      role="separator"
      tabIndex={0}
      aria-label={label}
      aria-orientation={orientation}
      aria-valuenow={share}
      aria-valuemin={0}
      aria-valuemax={100}
      onFocus={measure}
      onKeyDown={move}
    />
  );
}
