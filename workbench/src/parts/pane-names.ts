import { t } from '../words.ts';

/** What the pane of a plugin is called. @param title by which GraphiQL knows it */
export const paneName = (title: string): string =>
  ({
    'Documentation Explorer': t('Documentation Explorer'),
    Explorer: t('Explorer'),
    History: t('History'),
    Code: t('Code'),
  })[title] ?? title;
