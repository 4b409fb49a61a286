import react from '@vitejs/plugin-react';
import { defineConfig, loadEnv } from 'vite';

export default defineConfig(({ mode }) => {
  const { SANDBOX_URL = 'http://127.0.0.1:4010' } = loadEnv(mode, import.meta.dirname, '');
  // The sandbox answers no page of another origin; through here the page finds its demo token and lets credits arrive.
  const proxy = { '/sandbox': SANDBOX_URL };
  return {
    plugins: [react()],
    // Relative, so that the built page can be served from any folder.
    base: './',
    server: { host: '127.0.0.1', proxy },
    preview: { host: '127.0.0.1', proxy },
  };
});
