import { create } from 'zustand';
import type { Answer } from './net/execute.ts';

/** The last answer of each tab, by the tab's id: GraphiQL itself keeps its text alone. */
export const useAnswers = create<Readonly<Record<string, Answer>>>(() => ({}));
