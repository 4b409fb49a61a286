const stroke = {
  viewBox: '0 0 24 24',
  fill: 'none',
  stroke: 'currentColor',
  strokeWidth: 2,
  strokeLinecap: 'round',
  strokeLinejoin: 'round',
} as const;

export const CodeIcon = () => (
  <svg aria-hidden="true" {...stroke}>
    <path d="m8 6-6 6 6 6M16 6l6 6-6 6M13.5 4l-3 16" />
  </svg>
);

export const LinkIcon = () => (
  <svg aria-hidden="true" {...stroke}>
    <path d="M10 13a5 5 0 0 0 7.5.5l3-3a5 5 0 0 0-7-7l-1.7 1.7M14 11a5 5 0 0 0-7.5-.5l-3 3a5 5 0 0 0 7 7l1.7-1.7" />
  </svg>
);

export const SessionIcon = () => (
  <svg aria-hidden="true" {...stroke}>
    <path d="M12 15V3m0 0L8 7m4-4 4 4M5 13v6a2 2 0 0 0 2 2h10a2 2 0 0 0 2-2v-6" />
  </svg>
);

export const ThemeIcon = () => (
  <svg aria-hidden="true" {...stroke}>
    <circle cx="12" cy="12" r="9" />
    <path d="M12 3a9 9 0 0 1 0 18z" fill="currentColor" />
  </svg>
);

/** Two piers and a deck: a gateway. */
export const Mark = () => (
  <svg viewBox="0 0 32 32" aria-hidden="true" className="wb-mark">
    <rect width="32" height="32" rx="8" fill="currentColor" />
    <path
      d="M6 12.5h20M9 12.5V25M23 12.5V25M9 25c0-8 14-8 14 0M6 8.5h20"
      fill="none"
      stroke="var(--wb-on-green)"
      strokeWidth="2.4"
      strokeLinecap="round"
    />
  </svg>
);
