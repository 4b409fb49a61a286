-- Events as they were forwarded, and credits as an accountant looks at them.
CREATE TABLE IF NOT EXISTS events (
  key         text        PRIMARY KEY, -- a digest of all but the cursor: two events may have one id
  id          text        NOT NULL,
  type        text        NOT NULL,
  received_at timestamptz NOT NULL,
  kept_at     timestamptz NOT NULL DEFAULT now(),
  event       json        NOT NULL -- as it came: jsonb refuses U+0000 and half a character for good, and loses digits of long numbers
);
CREATE INDEX IF NOT EXISTS events_id ON events (id);
CREATE INDEX IF NOT EXISTS events_received_at ON events (received_at);

-- One row for each credit: a credit may come in two events, with two ids or with one. RETURNED is what was refused, and goes back by itself.
CREATE TABLE IF NOT EXISTS credits (
  transaction_id text          PRIMARY KEY,
  verdict        text          NOT NULL CHECK (verdict IN ('CREDIT', 'RETURNED')),
  event_key      text          NOT NULL REFERENCES events,
  amount         numeric(20,2) NOT NULL,
  currency       text          NOT NULL,
  clabe          text,
  tracking_key   text,
  received_at    timestamptz   NOT NULL
);

-- What no rule decides. Have an alarm on new rows.
CREATE TABLE IF NOT EXISTS for_a_person (
  event_key text PRIMARY KEY REFERENCES events,
  why       text NOT NULL
);
