-- Events as they were forwarded, and credits as an accountant looks at them.
CREATE TABLE IF NOT EXISTS events (
  id          text        PRIMARY KEY,
  type        text        NOT NULL,
  received_at timestamptz NOT NULL,
  kept_at     timestamptz NOT NULL DEFAULT now(),
  event       jsonb       NOT NULL
);
CREATE INDEX IF NOT EXISTS events_received_at ON events (received_at);

CREATE TABLE IF NOT EXISTS credits (
  event_id       text          PRIMARY KEY REFERENCES events,
  transaction_id text,
  amount         numeric(20,2) NOT NULL,
  currency       text          NOT NULL,
  clabe          text,
  tracking_key   text,
  received_at    timestamptz   NOT NULL
);
