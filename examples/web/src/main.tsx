import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { App } from './app.tsx';
import { Speaking } from './ui/i18n.tsx';
import './ui/styles.css';

const root = document.getElementById('root');
if (root === null) throw new Error('index.html has no #root');
createRoot(root).render(
  <StrictMode>
    <Speaking>
      <App />
    </Speaking>
  </StrictMode>,
);
