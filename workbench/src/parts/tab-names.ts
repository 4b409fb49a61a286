import { t } from '../words.ts';

/** What a tab is called. @param title by which GraphiQL knows it, and keeps it */
export const tabName = (title: string): string => (title === '<untitled>' ? t('Untitled') : title);
