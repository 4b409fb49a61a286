import { create } from 'zustand';
import type { Answer } from './net/execute.ts';

/** The last answer of each tab, by the tab's id: GraphiQL itself keeps its text alone. */
export const useAnswers = create<Readonly<Record<string, Answer>>>(() => ({}));

/** Forgets the answer of a tab: what is played next may get none. */
export const dropAnswer = (tab: string): void => {
  const { [tab]: _dropped, ...others } = useAnswers.getState();
  useAnswers.setState(others, true);
};
