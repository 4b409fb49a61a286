import { create } from 'zustand';
import type { Answer } from './net/execute.ts';

/** The last answer of each tab, by the tab's id: GraphiQL itself keeps its text alone. */
export const useAnswers = create<Readonly<Record<string, Answer>>>(() => ({}));

/** How often play was pressed: what came of it is to be seen. */
export const usePlays = create<{ readonly count: number }>(() => ({ count: 0 }));

export const countPlay = (): void => usePlays.setState(({ count }) => ({ count: count + 1 }));
