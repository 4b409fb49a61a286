/** What one phone has of the turns to connect. */
export interface Turn {
  take(): Promise<void>;
  /** Gives it on; nothing where it has none. */
  end(): void;
}

/** Makes turns of which so many are taken at a time; the others wait in their order. */
export function createTurns(atATime: number): () => Turn {
  let free = atATime;
  const waiting: (() => void)[] = [];
  return () => {
    let isMine = false;
    return {
      async take() {
        if (free > 0) free -= 1;
        else await new Promise<void>((resolve) => waiting.push(resolve));
        isMine = true;
      },
      end() {
        if (!isMine) return;
        isMine = false;
        const next = waiting.shift();
        if (next === undefined) free += 1;
        else next();
      },
    };
  };
}
